"""Opportunistic multipath forwarding (Kazemzadeh and Jacobsen, Middleware 2012): strategies S0, S1, S2 and SH."""
