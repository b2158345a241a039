"""Plots as inline SVG: pure functions from numbers to markup, each with a text alternative.

Widths are percentages, so that a plot fills its place on a phone and on a wide screen with letters of one size.
"""
