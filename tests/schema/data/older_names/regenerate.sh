#!/bin/sh
# Writes ../older_names.jsonl.xz from the schemas in the code of Kafka's older releases, each different one once, with
# the oldest release that has it. Needs java, javac, mvn, xz and Maven Central.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

javac -d "$work" "$here/OlderNames.java"
for release in 0.8.2.2 0.9.0.1 0.10.0.1 0.10.1.1 0.10.2.2 0.11.0.3 1.0.2 1.1.1 2.0.1 2.1.1 2.2.2 2.3.1 2.4.1 2.5.1 \
    2.6.3 2.7.2 2.8.2; do
    cat > "$work/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId>
<version>$release</version></dependency></dependencies></project>
POM
    mvn -q -f "$work/pom.xml" dependency:build-classpath -Dmdep.outputFile="$work/path" >&2
    java -cp "$work:$(cat "$work/path")" OlderNames "$release" 2> "$work/log"
done > "$work/all"
sed 's/^{"release":"[^"]*",//' "$work/all" | paste -d '\t' - "$work/all" | awk -F '\t' '!seen[$1]++ { print $2 }' \
    | xz -9e > "$here/../older_names.jsonl.xz"
