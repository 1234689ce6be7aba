"""Estimators that keep state between samples: arrival rate, service rates, spread, a low percentile."""
