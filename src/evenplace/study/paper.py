"""The paper's own numbers, to stand beside ours: R@1 / R@5 / R@10 in percent, by its test sets.

They are of other data, networks and hardware; only the differences between rows can be compared.
"""

V1, V2 = "paper, SF-XL v1", "paper, SF-XL v2"
MSLS, PITTS, NORDLAND = "paper, MSLS", "paper, Pitts30k", "paper, Nordland"
MSLS_TAIL, PITTS_TAIL = "paper tail, MSLS", "paper tail, Pitts30k"
V1_TAIL, V2_TAIL = "paper tail, SF-XL v1", "paper tail, SF-XL v2"
TIME = "paper, ms"

KINDS = {  # Table 1's rows, and the recipe of each in small; * is with low-visit bias
    "classification": {"PlaNet": "planet-small", "HGE": "hge-small", "CPlaNet": "cplanet-small",
                       "D&C": "dc-small", "DAPR-C": "dapr-c-small"},
    "retrieval": {"NetVLAD": "netvlad-small", "SFRS": "sfrs-small", "GeM": "gem-small",
                  "CosPlace": "cosplace-small", "SALAD": "salad-small", "SALAD*": "salad-small",
                  "BoQ": "boq-small", "BoQ*": "boq-small"},
    "mixed": {"D&C + CosPlace": "dc-cosplace-small", "DAPR-M": "dapr-m-paper-small",
              "recommended": "dapr-m"},
}  # fmt: skip
PIPELINES = {  # Table 1, R@1; of several networks the one nearest to ours
    name: {V1: v1, V2: v2, TIME: time}
    for name, time, v1, v2 in (
        ("PlaNet", "12", "24.5", "53.1"),
        ("HGE", "15", "27.0", "56.4"),
        ("CPlaNet", "17", "27.4", "64.1"),
        ("D&C", "12", "61.0", "79.1"),
        ("DAPR-C", "–", "67.2", "84.1"),
        ("NetVLAD", "12117", "40.0", "71.1"),
        ("SFRS", "12117", "51.2", "83.1"),
        ("GeM", "12117", "21.7", "43.1"),
        ("CosPlace", "1514", "64.7", "83.4"),
        ("SALAD", "4805", "87.6", "93.5"),
        ("SALAD*", "4823", "88.0", "94.5"),
        ("BoQ", "21333", "83.7", "92.8"),
        ("BoQ*", "21047", "88.8", "93.7"),
        ("D&C + CosPlace", "30", "71.4", "87.6"),
        ("DAPR-M", "51", "74.5", "88.1"),
    )
}
PLUG_INS = {  # Tables 2 to 4
    "CosPlace": {
        V1: "74.4 / 82.0 / 84.5", V2: "90.0 / 94.6 / 97.0", MSLS: "81.7 / 89.7 / 91.6",
        PITTS: "86.7 / 94.5 / 97.0", NORDLAND: "41.1 / 56.3 / 63.3"},
    "CosPlace + LB": {
        V1: "76.1 / 84.2 / 86.3", V2: "90.0 / 95.8 / 97.0", MSLS: "82.2 / 89.8 / 92.4",
        PITTS: "89.4 / 96.6 / 97.9", NORDLAND: "44.6 / 59.4 / 65.7"},
    "D&C": {V1: "44.1 / 57.2 / 63.6", V2: "64.0 / 84.9 / 90.1"},  # LR@N
    "D&C + LB": {V1: "48.2 / 64.2 / 69.6", V2: "66.2 / 86.1 / 90.3"},
    "D&C mixed": {V1: "55.1 / 62.2 / 64.7", V2: "81.1 / 88.6 / 90.0"},
    "D&C mixed + LB": {V1: "57.4 / 65.4 / 66.9", V2: "81.3 / 89.0 / 91.1"},
    "SALAD": {
        MSLS: "91.9 / 96.4 / 96.5", PITTS: "92.3 / 96.3 / 97.3", NORDLAND: "76.0 / 89.2 / 92.0",
        MSLS_TAIL: "86.49 / 93.24 / 94.14", PITTS_TAIL: "90.56 / 94.86 / 96.87"},
    "SALAD + LB": {
        MSLS: "92.6 / 96.5 / 97.0", PITTS: "92.7 / 96.8 / 97.7", NORDLAND: "76.6 / 89.6 / 92.9",
        MSLS_TAIL: "87.39 / 94.14 / 95.05", PITTS_TAIL: "91.19 / 95.50 / 97.36"},
    "BoQ": {
        MSLS: "91.2 / 95.3 / 96.1", PITTS: "92.6 / 96.4 / 97.4", NORDLAND: "81.3 / 92.5 / 94.8",
        MSLS_TAIL: "89.64 / 93.69 / 94.59", PITTS_TAIL: "89.19 / 93.69 / 94.59"},
    "BoQ + LB": {
        MSLS: "93.7 / 96.2 / 96.8", PITTS: "92.9 / 96.6 / 97.5", NORDLAND: "83.7 / 94.6 / 96.5",
        MSLS_TAIL: "91.44 / 94.59 / 95.50", PITTS_TAIL: "92.56 / 96.33 / 97.65"},
}  # fmt: skip
MODULES = {  # Table 5
    "CE + L2": {V1: "75.8 / 83.4 / 85.6", V2: "91.1 / 93.8 / 95.7"},
    "LB + L2": {V1: "88.0 / 89.1 / 90.6", V2: "93.8 / 96.2 / 97.0"},
    "LB + CFD": {V1: "89.7 / 92.4 / 92.5", V2: "94.3 / 97.0 / 97.5"},
}
LOSSES = {  # Table 6
    "cross-entropy": MODULES["CE + L2"],
    "logit adjustment": {V1: "88.0 / 91.5 / 92.2", V2: "93.3 / 97.2 / 97.7"},
    "focal": {V1: "86.4 / 90.5 / 91.4", V2: "94.0 / 96.3 / 97.3"},
    "low-visit bias": MODULES["LB + CFD"],
}
DISTANCES = {  # supplement B, R@1 in the tail of SF-XL
    "L2": {V1_TAIL: "87.9", V2_TAIL: "85.7"},
    "CFD": {V1_TAIL: "93.5", V2_TAIL: "87.0"},
}
CONFIDENCE = {  # supplement E: AUC-PR
    "Nordland": {"l2": ".80", "sue": ".86", "cfd": ".86"},
    "Pitts30k": {"l2": ".97", "sue": ".97", "cfd": ".99"},
    "MSLS": {"l2": ".95", "sue": ".95", "cfd": ".97"},
}
TIMES = {  # Table 1, SF-XL's 2.8 million photos on a GPU
    "whole database, L2": {TIME: "1488 (CosPlace, ResNet101)"},
    "shortlist, L2": {TIME: "30 (D&C + CosPlace)"},
    "shortlist, CFD": {TIME: "51 (DAPR-M, EfficientNet)"},
}
