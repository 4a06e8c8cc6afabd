"""The paper's own numbers, to stand beside ours: R@N in percent on SF-XL test v1 and v2.

They are of other data, networks and hardware; only the differences between rows can be compared.
"""

V1, V2 = "paper R@1 v1", "paper R@1 v2"
LR1, LR2 = "paper LR@1 v1", "paper LR@1 v2"
MSLS, PITTS, NORDLAND = "paper R@1 MSLS", "paper R@1 Pitts30k", "paper R@1 Nordland"
MSLS_TAIL, PITTS_TAIL = "paper tail R@1 MSLS", "paper tail R@1 Pitts30k"
TIME = "paper, ms"

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
