{{- define "barnabas.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "barnabas.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "barnabas.labels" -}}
{{ include "barnabas.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Where the pods have names of their own. */}}
{{- define "barnabas.domain" -}}
{{ include "barnabas.name" . }}-nodes.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "barnabas.voters" -}}
{{- $root := . }}
{{- range $node := until (int .Values.controllers) }}
{{- if $node }},{{ end }}{{ $node }}@{{ include "barnabas.name" $root }}-{{ $node }}.{{ include "barnabas.domain" $root }}:9093
{{- end }}
{{- end }}

{{/* The given one, else that of the installation, else a new one: 16 random bytes in base64url without padding. */}}
{{- define "barnabas.clusterId" -}}
{{- $before := lookup "v1" "Secret" .Release.Namespace (include "barnabas.name" .) }}
{{- if .Values.clusterId }}{{ .Values.clusterId }}
{{- else if $before }}{{ index $before.data "cluster-id" | b64dec }}
{{- else }}{{ randAlphaNum 21 }}A{{ end }}
{{- end }}
