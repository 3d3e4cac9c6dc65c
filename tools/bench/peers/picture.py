"""Curves as SVG, in a few lines of our own: a plotting library would be the benchmark's only need beyond torch."""

import math
from xml.sax.saxutils import escape

COLOURS = ["#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"]
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 460, 340, 60, 40, 30, 50  # of a panel, and its margins


def ticks(low, high):
    """1, 2 and 5 times powers of ten, from the last one up to `low` to the first one from `high` on."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [m * 10.0**power for power in powers for m in (1, 2, 5)]
    first = max(i for i, x in enumerate(steps) if x <= low * 1.0001)
    last = min(i for i, x in enumerate(steps + [math.inf]) if x >= high * 0.9999)
    return steps[first:last + 1]


def panel(title, lines, colours, at):
    xs = sorted({x for points in lines.values() for x, _ in points})
    ys = [y for points in lines.values() for _, y in points]
    marks = ticks(min(ys), max(ys))

    def scaled(value, low, high, begin, end):
        return begin + (end - begin) * (math.log(value / low) / math.log(high / low) if high > low else 0.5)

    def across(x):
        return at + scaled(x, xs[0], xs[-1], LEFT, WIDTH - RIGHT)

    def down(y):
        return scaled(y, marks[0], marks[-1], HEIGHT - BOTTOM, TOP)

    centre = 'text-anchor="middle"'
    out = [f'<text x="{at + WIDTH / 2:.0f}" y="20" {centre} font-weight="bold">{escape(title)}</text>']
    for y in marks:
        out.append(f'<path d="M{at + LEFT} {down(y):.1f}H{at + WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{at + LEFT - 6}" y="{down(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in xs:
        out.append(f'<text x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 18}" {centre}>{x}</text>')
    for name, points in lines.items():
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2"/>')
        out += [f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="3" fill="{colours[name]}"/>' for x, y in points]
    return out


def curves(panels):
    """An SVG of a panel for each entry: `panels` maps heads to lines, by name lists of (length, ms); axes are
    logarithmic."""
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    width, height = max(1, len(panels)) * WIDTH, HEIGHT + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           f'font-size="12"><rect width="{width}" height="{height}" fill="white"/>']
    for i, (title, lines) in enumerate(panels.items()):
        out += panel(f"{title} heads: ms against tokens of one sequence", lines, colours, i * WIDTH)
    for i, name in enumerate(names):
        x = LEFT + i * 120
        out.append(f'<path d="M{x} {HEIGHT + 10}h20" stroke="{colours[name]}" stroke-width="2"/>'
                   f'<text x="{x + 26}" y="{HEIGHT + 14}">{escape(name)}</text>')
    return "\n".join(out + ["</svg>", ""])
