# Charts of bench/run.py as one SVG: panels of lines, both axes logarithmic.
# It knows nothing of what is measured, and needs no library.
#
# Copyright (C) the nginx-kube-informer authors
# SPDX-License-Identifier: BSD-2-Clause
"""Draws what something costs against how much of it there is."""

import html
import math

WIDTH, HEIGHT = 480, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 36, 40
LINE = 18  # of the legend
COLUMNS = 2
COLOURS = ("#0b6e4f", "#1f77d0", "#c0392b", "#8e5a00", "#6c3483", "#444444")


def decades(values):
    """The powers of ten below and above all values, as exponents."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def number(value):
    """10000 as "10k"."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def text(x, y, what, anchor="start", extra=""):
    """One line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{html.escape(what)}</text>'


def line(points, colour, dashed, width=2):
    """A line through points."""
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'
    )


def panel(title, axis, lines, styles):
    """
    A panel's elements, its corner at 0, 0.  lines: {name: [(x, y)]}, of which
    what is 0 or less is not drawn.
    """
    lines = {k: [(x, y) for x, y in v if x > 0 and y > 0] for k, v in lines.items()}
    points = [point for v in lines.values() for point in v]
    out = [text(LEFT, 22, title, extra=' font-weight="bold"')]
    if not points:
        return out
    xs = sorted({x for x, _ in points})
    x_low, x_high = math.log10(xs[0]), math.log10(xs[-1] if len(xs) > 1 else xs[0] * 10)
    y_low, y_high = decades([y for _, y in points])

    def place(x, y):
        across = (math.log10(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    for exponent in range(y_low, y_high + 1):
        ends = [place(x, 10.0**exponent) for x in (10**x_low, 10**x_high)]
        out.append(line(ends, "#dddddd", False, 1))
        out.append(text(LEFT - 6, ends[0][1] + 4, number(10.0**exponent), "end"))
    for x in xs:
        out.append(text(place(x, 10.0**y_low)[0], HEIGHT - BOTTOM + 18, number(x), "middle"))
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, axis, "middle"))
    for name, values in lines.items():
        colour, dashed = styles[name]
        placed = [place(x, y) for x, y in values]
        out.append(line(placed, colour, dashed))
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
    return out


def chart(title, axis, panels, groups):
    """
    The text of an SVG.  panels: (title, {name: [(x, y)]}) each; groups: names
    of lines of one colour, of which all but the first are dashed.
    """
    styles = {
        name: (COLOURS[i % len(COLOURS)], j > 0)
        for i, names in enumerate(groups)
        for j, name in enumerate(names)
    }
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT + (len(styles) + 1) * LINE
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for i, (name, lines) in enumerate(panels):
        x, y = i % COLUMNS * WIDTH, i // COLUMNS * HEIGHT
        out += [f'<g transform="translate({x} {y})">', *panel(name, axis, lines, styles), "</g>"]
    for i, (name, (colour, dashed)) in enumerate(styles.items()):
        y = rows * HEIGHT + (i + 1) * LINE
        out.append(line([(LEFT, y - 4), (LEFT + 40, y - 4)], colour, dashed))
        out.append(text(LEFT + 48, y, name))
    return "\n".join([*out, "</svg>"]) + "\n"
