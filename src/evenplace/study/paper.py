"""The paper's own numbers, to stand beside ours: R@N in percent on SF-XL test v1 and v2.

They are of other data, networks and hardware; only the differences between rows can be compared.
"""

V1, V2 = "paper R@1 v1", "paper R@1 v2"
LR1, LR2 = "paper LR@1 v1", "paper LR@1 v2"
MSLS, PITTS, NORDLAND = "paper R@1 MSLS", "paper R@1 Pitts30k", "paper R@1 Nordland"
MSLS_TAIL, PITTS_TAIL = "paper tail R@1 MSLS", "paper tail R@1 Pitts30k"
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
PIPELINES = {  # Table 1; of several networks the one nearest to ours
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
LOSSES = {  # Table 6
    "cross-entropy": {V1: "75.8", V2: "91.1"},
    "logit adjustment": {V1: "88.0", V2: "93.3"},
    "focal": {V1: "86.4", V2: "94.0"},
    "low-visit bias": {V1: "89.7", V2: "94.3"},
}
MODULES = {  # Table 5
    "CE + L2": {V1: "75.8", V2: "91.1"},
    "LB + L2": {V1: "88.0", V2: "93.8"},
    "LB + CFD": {V1: "89.7", V2: "94.3"},
}
PLUG_INS = {  # Tables 2 to 4
    "CosPlace": {V1: "74.4", V2: "90.0", MSLS: "81.7", PITTS: "86.7", NORDLAND: "41.1"},
    "CosPlace + LB": {V1: "76.1", V2: "90.0", MSLS: "82.2", PITTS: "89.4", NORDLAND: "44.6"},
    "D&C mixed": {V1: "55.1", V2: "81.1", LR1: "44.1", LR2: "64.0"},
    "D&C mixed + LB": {V1: "57.4", V2: "81.3", LR1: "48.2", LR2: "66.2"},
    "SALAD": {MSLS: "91.9", PITTS: "92.3", NORDLAND: "76.0", MSLS_TAIL: "86.49",
              PITTS_TAIL: "90.56"},
    "SALAD + LB": {MSLS: "92.6", PITTS: "92.7", NORDLAND: "76.6", MSLS_TAIL: "87.39",
                   PITTS_TAIL: "91.19"},
    "BoQ": {MSLS: "91.2", PITTS: "92.6", NORDLAND: "81.3", MSLS_TAIL: "89.64",
            PITTS_TAIL: "89.19"},
    "BoQ + LB": {MSLS: "93.7", PITTS: "92.9", NORDLAND: "83.7", MSLS_TAIL: "91.44",
                 PITTS_TAIL: "92.56"},
}  # fmt: skip
DISTANCES = {  # supplement, tail of SF-XL
    "L2": {"paper tail R@1 v1": "87.9", "paper tail R@1 v2": "85.7"},
    "CFD": {"paper tail R@1 v1": "93.5", "paper tail R@1 v2": "87.0"},
}
CONFIDENCE = {  # supplement: AUC-PR on Nordland, Pitts30k, MSLS
    "l2": {"Nordland": ".80", "Pitts30k": ".97", "MSLS": ".95"},
    "sue": {"Nordland": ".86", "Pitts30k": ".97", "MSLS": ".95"},
    "cfd": {"Nordland": ".86", "Pitts30k": ".99", "MSLS": ".97"},
}
TIMES = {  # Table 1, SF-XL's 2.8 million photos on a GPU
    "whole database, L2": {TIME: "1488 (CosPlace, ResNet101)"},
    "shortlist, L2": {TIME: "30 (D&C + CosPlace)"},
    "shortlist, CFD": {TIME: "51 (DAPR-M, EfficientNet)"},
}
