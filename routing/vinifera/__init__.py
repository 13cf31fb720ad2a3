"""Vinifera: rendezvous routing that knows subscriptions (Rahimian, Girdzijauskas, Payberah and Haridi, 2012)."""
