"""The multipath paper (Kazemzadeh and Jacobsen, Middleware 2012): its runs, costs, plots and criteria."""
