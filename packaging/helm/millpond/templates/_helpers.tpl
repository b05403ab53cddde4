{{- define "millpond.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "millpond.selector" -}}
app.kubernetes.io/name: millpond
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "millpond.labels" -}}
{{ include "millpond.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Whether the servers are nodes of a cluster, with names that stay. */}}
{{- define "millpond.isCluster" -}}
{{- if hasKey .Values.settings "cluster" }}yes{{ end -}}
{{- end -}}

{{/* The kind of the workload: names and volumes stay with a StatefulSet. */}}
{{- define "millpond.kind" -}}
{{- if or (include "millpond.isCluster" .) .Values.cache.persistence.enabled }}StatefulSet{{ else }}Deployment{{ end -}}
{{- end -}}

{{/* A value as TOML. */}}
{{- define "millpond.value" -}}
{{- if or (kindIs "bool" .) (kindIs "slice" .) -}}{{ . | toJson }}
{{- else if or (kindIs "float64" .) (kindIs "int64" .) (kindIs "int" .) -}}{{ int64 . }}
{{- else -}}{{ . | quote }}
{{- end -}}
{{- end -}}

{{/* The configuration: keys of the file first, tables behind them. */}}
{{- define "millpond.toml" -}}
{{- range $key, $value := omit .Values.settings "http" "rtsp" "admin" "cache" }}
{{ $key }} = {{ include "millpond.value" $value }}
{{- end }}
{{- if not (hasKey .Values.settings "admin-hosts") }}
admin-hosts = ["*"]
{{- end }}
{{- if not (hasKey .Values.settings "cache-size") }}
cache-size = {{ .Values.cache.size | quote }}
{{- end }}
{{- if not (hasKey .Values.settings "shutdown-grace") }}
shutdown-grace = "{{ sub (sub (int .Values.terminationGracePeriodSeconds) 5) (int .Values.preStopSeconds) }}s"
{{- end }}
{{- if include "millpond.isCluster" . }}
{{- if not (hasKey .Values.settings "cluster-steering") }}
cluster-steering = {{ .Values.cluster.steering | quote }}
{{- end }}
{{- if and .Values.cluster.podNetworks (not (hasKey .Values.settings "trusted-proxies")) }}
trusted-proxies = {{ .Values.cluster.podNetworks | toJson }}
{{- end }}
{{- end }}
{{- if .Values.tlsSecret }}
tls-cert = "/tls/tls.crt"
tls-key = "/tls/tls.key"
{{- end }}
{{- range $name, $options := .Values.places }}

[places.{{ $name }}]
{{- range $key, $value := $options }}
{{ $key }} = {{ include "millpond.value" $value }}
{{- end }}
{{- end }}
{{- end -}}
