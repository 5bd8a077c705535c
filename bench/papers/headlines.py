"""The papers' headlines beside what the CSVs say, for the page of results: (what, figure, which rows, column of ours, column
of the paper's or its figure, why it differs). A cause is shown where ours is more than 15 % off."""

import common

CLOSE = 15  # %
SLOWER = "one device trains AlexNet more slowly with 32 images than the only published point says: figure 14b"
HOST = "the paper's host gave its 16 devices half of what TensorFlow's gave 8: figure 7"
MESSAGES = "a message of a parameter took the paper's frameworks longer than TensorFlow's points say: figure 7"
BETWEEN = "the paper hides its servers' messages in part, `server` none: `data` and `server` enclose its factor (figure 7)"
FEW = "convolutions at 0.7 of their rate with two images a node give it: figure 9b"
SOCKETS = "the paper gives no figure for its link between sockets: with 20 GB/s all three gains are within 9 %: table 1b"
NETS = ["alexnet", "vgg-16", "inception-v3"]

HEADLINES = [
    *((f"DeePa, 16 K80, {net}: over parameter servers", "deepa-figure-7", {"net": net}, "auto over server", "paper", cause)
      for net, cause in zip(NETS, (HOST, HOST, MESSAGES))),
    *((f"DeePa, {devices} P100, {net}: over parameter servers", "deepa-figure-14", {"net": net, "devices": devices}, "auto over server", "paper", cause)
      for devices in ("4", "16") for net, cause in zip(NETS, (SLOWER, HOST, MESSAGES))),
    ("DeePa, bytes of data parallelism over the plan's, at most", "deepa-figure-8", {"machine": "deepa-tables", "net": "alexnet"}, "data over plan", 23,
     "the plan leaves 12 of 16 devices out: figure 9"),
    *((f"Jia et al., {net}: 16 P100 over one", "layerwise-figure-7", {"net": net, "devices": "16"}, "auto, times one", "paper, times one", "") for net in NETS),
    *((f"Jia et al., {net}: over the best other", "layerwise-figure-7", {"net": net, "devices": "16"}, "auto over best other", "paper", cause)
      for net, cause in zip(NETS, (SLOWER, BETWEEN, BETWEEN))),
    ("Lee et al., VGG-A, 256 images: 128 nodes over one", "lee-figure-6", {"nodes": "128"}, "parallel CNN", "paper", ""),
    ("Lee et al., VGG-A, 512 images", "lee-figure-8", {"nodes": "128"}, "batch 512", "paper 512", ""),
    ("Lee et al., VGG-A, 128 images", "lee-figure-8", {"nodes": "128"}, "batch 128", "paper 128", "the paper's figure contradicts its own 62.97: figure 9b"),
    *((f"Lee et al., {net}", "lee-figure-9", {"nodes": "128"}, net, f"paper {net}", FEW) for net in ("vgg-128", "vgg-256", "vgg-512")),
    ("Hadjis et al., CaffeNet on a CPU: the batch lowered at once over Caffe's algorithm", "troll-figure-4b", {"convolutions": "lowering of the batch"},
     "times Caffe's algorithm", "paper", "on 2 cores OpenBLAS multiplies one image nearly as fast as many, on the paper's 8 it did not: figure 2"),
    ("Hadjis et al., cost of an iteration on a CPU over a GPU", "troll-price", {"machine": "c4.4xlarge"}, "cost over the GPU", "paper", ""),
    ("Dryden et al., segmented allreduce in eight ways", "channels-figure-4", {"devices": "512"}, "1 way over 8", 4,
     "the paper, too, expected of rings what they give here, and supposes contention of threads: figure 4"),
    *((f"Dryden et al., {net}: cut further over by sample", "channels-table-1", {"net": net}, "gain", "paper, gain", cause)
      for net, cause in (("resnet-50", SOCKETS), ("wrn-50-2", ""), ("wrn-50-4", ""))),
]


def rows(folder):
    """(what, ours, the paper's, how far ours is off in %, the cause), as far as the figures' CSVs are there."""
    for what, name, which, ours, theirs, cause in HEADLINES:
        path = folder / f"{name}.csv"
        if not path.exists():
            continue
        row = next(r for r in common.read_csv(path) if all(r[key] == value for key, value in which.items()))
        paper = row[theirs] if isinstance(theirs, str) else str(theirs)
        off = 100 * (float(row[ours]) / float(paper) - 1)
        yield {"headline": what, "ours": row[ours], "paper": paper, "off, %": f"{off:+.0f}", "why": cause if abs(off) > CLOSE else ""}
