"""Line policies: in which order a node serves its node queue."""
