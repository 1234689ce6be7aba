"""When pods are reported, and when Relieve policies are asked."""
