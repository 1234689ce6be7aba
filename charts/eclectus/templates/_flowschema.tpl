{{- /*
The FlowSchema of one component's Leases: (dict "root" $ "name" … "labels" … "account" …).

Renewals have a priority level of their own in the API server, as those of kube-scheduler have: in that of all service
accounts (workload-low) they would wait behind whatever tenants ask for, and a leader that cannot renew stops. The
level is one of Kubernetes' own; where an administrator has deleted it, the FlowSchema has no effect.
*/ -}}
{{- define "eclectus.flowSchema" -}}
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: {{ .name }}-{{ .root.Release.Namespace }}-leases
  labels:
    {{- .labels | nindent 4 }}
spec:
  priorityLevelConfiguration:
    name: leader-election
  # After Kubernetes' own about Leases (100), before that of all service accounts (9000).
  matchingPrecedence: 1000
  distinguisherMethod:
    type: ByUser
  rules:
    - subjects:
        - kind: ServiceAccount
          serviceAccount:
            namespace: {{ .root.Release.Namespace }}
            name: {{ .account }}
      resourceRules:
        - apiGroups: [coordination.k8s.io]
          resources: [leases]
          namespaces: ["*"]
          verbs: [get, create, update]
{{- end }}
