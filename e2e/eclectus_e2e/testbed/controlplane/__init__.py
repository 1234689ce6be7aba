"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler, built from Go modules and run here."""
