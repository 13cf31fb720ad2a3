"""The epidemic paper (Costa et al., DEBS 2003): its plan, runs, charts and criteria."""
