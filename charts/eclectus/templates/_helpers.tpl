{{- define "eclectus.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* A release called `eclectus` gives objects called `eclectus`, not `eclectus-eclectus`. */ -}}
{{- define "eclectus.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "eclectus.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "eclectus.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "eclectus.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "eclectus.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: name an existing ServiceAccount, or let serviceAccount.create be true" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* What a Deployment selects by: it can never change in the life of a release. */ -}}
{{- define "eclectus.selectorLabels" -}}
app.kubernetes.io/name: {{ include "eclectus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: scheduler
{{- end }}

{{- define "eclectus.labels" -}}
{{ include "eclectus.selectorLabels" . }}
{{ include "eclectus.commonLabels" . }}
{{- end }}

{{- /* Of objects that belong to no single part of the house. */ -}}
{{- define "eclectus.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: eclectus
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* An image by a value of repository, tag and digest: (dict "image" … "version" …). */ -}}
{{- define "eclectus.imageReference" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (default .version .image.tag) }}
{{- end }}
{{- end }}

{{- define "eclectus.image" -}}
{{- include "eclectus.imageReference" (dict "image" .Values.scheduler.image "version" .Chart.AppVersion) }}
{{- end }}

{{- /* The operator's names and labels: those of the release with a component of its own. */ -}}
{{- define "eclectus.operator.fullname" -}}
{{- printf "%s-operator" (include "eclectus.fullname" . | trunc 54 | trimSuffix "-") }}
{{- end }}

{{- define "eclectus.operator.serviceAccountName" -}}
{{- if .Values.operator.serviceAccount.create }}
{{- default (include "eclectus.operator.fullname" .) .Values.operator.serviceAccount.name }}
{{- else }}
{{- required "operator.serviceAccount.name: name an existing ServiceAccount, or let operator.serviceAccount.create be true" .Values.operator.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "eclectus.operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "eclectus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "eclectus.operator.labels" -}}
{{ include "eclectus.operator.selectorLabels" . }}
{{ include "eclectus.commonLabels" . }}
{{- end }}

{{- /* Which installation a probe pod is of: in its name and labels, so letters and digits alone. */ -}}
{{- define "eclectus.operator.instance" -}}
{{- printf "%s/%s" .Release.Namespace (include "eclectus.fullname" .) | sha256sum | trunc 10 }}
{{- end }}

{{- define "eclectus.operator.probeNamespace" -}}
{{- default .Release.Namespace .Values.operator.probes.namespace }}
{{- end }}

{{- /* Cluster-wide, so it carries the namespace. */ -}}
{{- define "eclectus.operator.priorityClass" -}}
{{- printf "%s-%s-probe" (include "eclectus.fullname" .) .Release.Namespace }}
{{- end }}

{{- /* The configuration as the scheduler reads it: values.config over what depends on the release. */ -}}
{{- define "eclectus.config" -}}
{{- $lease := dict "resourceNamespace" .Release.Namespace "resourceName" (include "eclectus.fullname" .) }}
{{- $identity := dict "apiVersion" "eclectus.dev/v1alpha1" "kind" "SchedulerConfiguration" "leaderElection" $lease }}
{{- mergeOverwrite $identity (deepCopy .Values.config) | toYaml }}
{{- end }}

{{- /* Errors that a schema cannot see: two values that are fine alone. */ -}}
{{- define "eclectus.check" -}}
{{- if and (gt (int .Values.scheduler.replicas) 1) (not .Values.config.leaderElection.leaderElect) }}
{{- fail (printf "config.leaderElection.leaderElect is false, but scheduler.replicas is %d: two schedulers would place the same pods. Set scheduler.replicas to 1 or leaderElect to true." (int .Values.scheduler.replicas)) }}
{{- end }}
{{- end }}
