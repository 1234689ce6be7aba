{{- /* The NetworkPolicy of one component: (dict "root" $ "name" … "labels" … "selector" …). */ -}}
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
  {{- with .root.Values.networkPolicy.from }}
  ingress:
    - ports:
        - port: metrics
          protocol: TCP
      from:
        {{- toYaml . | nindent 8 }}
  {{- else }}
  # Nobody, except the pod's own node: its kubelet runs the probes.
  ingress: []
  {{- end }}
{{- end }}
