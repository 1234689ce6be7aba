"""What each job or pool is entitled to of several resources."""
