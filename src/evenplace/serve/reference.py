"""The API's documentation as a page without scripts, from its OpenAPI description."""

import html
import json
from typing import Any


def reference_page(api: dict[str, Any]) -> str:
    """Every route with its parameters, an example of what it says, and how it refuses."""
    routes = "".join(
        _route(path, method, about)
        for path, methods in api["paths"].items()
        for method, about in methods.items()
    )
    title = html.escape(api["info"]["title"])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}: the API</title>"
        '<link rel="icon" href="/assets/icon.svg"><link rel="stylesheet" href="/assets/page.css">'
        '<link rel="stylesheet" href="/assets/app.css"></head><body class="reference">'
        f"<header><h1>{title}: the API</h1><p class=lead>{html.escape(api['info']['summary'])} "
        'For machines: <a href="/openapi.json">openapi.json</a>. '
        'For people: <a href="/">the page</a>.'
        f"</p></header><main>{routes}</main></body></html>\n"
    )


def _route(path: str, method: str, about: dict[str, Any]) -> str:
    summary = html.escape(about.get("summary", ""))
    text = html.escape(about.get("description", ""))
    return (
        f"<section><h2><code>{method.upper()} {html.escape(path)}</code> {summary}</h2>"
        f"<p class=caption>{text}</p>{_parameters(about)}{_body(about)}"
        f"{_responses(about)}</section>"
    )


def _parameters(about: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th scope=row><code>{html.escape(one['name'])}</code></th><td>{one['in']}</td>"
        f"<td class=text>{html.escape(_allowed(one))}</td></tr>"
        for one in about.get("parameters", [])
    )
    if not rows:
        return ""
    head = "<tr><th scope=col>parameter</th><th scope=col>in</th><th scope=col>allowed</th></tr>"
    return f"<div class=scroll><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"


def _allowed(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    choices: list[Any] = next(
        (one["enum"] for one in [schema, *schema.get("anyOf", [])] if "enum" in one), []
    )
    parts = [
        ", ".join(map(str, choices)) if choices else schema.get("type", ""),
        f"{schema['minimum']} to {schema['maximum']:,}" if "maximum" in schema else "",
        f"{schema['default']} if left out" if "default" in schema else "",
        parameter.get("description", ""),
    ]
    return "; ".join(part for part in parts if part)


def _body(about: dict[str, Any]) -> str:
    kinds = about.get("requestBody", {}).get("content", {})
    if not kinds:
        return ""
    names = " or ".join(f"<code>{html.escape(kind)}</code>" for kind in kinds)
    return f"<p>The body is {names}; a form's photos are each named <code>photo</code>.</p>"


def _responses(about: dict[str, Any]) -> str:
    parts = []
    for status, response in about.get("responses", {}).items():
        shown = [
            content["example"]
            for content in response.get("content", {}).values()
            if "example" in content
        ]
        if status == "200" and shown:
            text = html.escape(json.dumps(shown[0], indent=1))
            parts.append(
                f"<details><summary>an example answer</summary><pre>{text}</pre></details>"
            )
    refusals = "".join(
        f"<li><code>{status}</code> {html.escape(response['description'])}</li>"
        for status, response in sorted(about.get("responses", {}).items())
        if status != "200"
    )
    if refusals:
        parts.append(f"<details><summary>how it refuses</summary><ul>{refusals}</ul></details>")
    return "".join(parts)
