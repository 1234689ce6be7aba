"""Line policies: in which order a node serves its queue."""
