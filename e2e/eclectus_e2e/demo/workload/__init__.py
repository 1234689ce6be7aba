"""What is sent: classes of work, arrivals, pods and the client that creates and deletes them."""
