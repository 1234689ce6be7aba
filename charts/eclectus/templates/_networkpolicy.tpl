{{- /* The NetworkPolicy of one component: (dict "root" $ "name" … "labels" … "selector" … "open" a port for everybody or ""). */ -}}
{{- define "eclectus.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- .labels | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- .selector | nindent 6 }}
  policyTypes: [Ingress]
  {{- if or .root.Values.networkPolicy.from .open }}
  ingress:
    {{- with .root.Values.networkPolicy.from }}
    - ports:
        - port: metrics
          protocol: TCP
      from:
        {{- toYaml . | nindent 8 }}
    {{- end }}
    {{- with .open }}
    # Everybody: API servers are on their nodes' networks. Who has no certificate of their front proxy is refused.
    - ports:
        - port: {{ . }}
          protocol: TCP
    {{- end }}
  {{- else }}
  # Nobody, except the pod's own node: its kubelet runs the probes.
  ingress: []
  {{- end }}
{{- end }}
