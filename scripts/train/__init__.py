"""Training of the embedded classifier's shipped weights; needs the `train` dependency group."""
