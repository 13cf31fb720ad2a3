"""The paper on guaranteed delivery (Bhola et al., DSN 2002): its failure tests, costs and plots."""
