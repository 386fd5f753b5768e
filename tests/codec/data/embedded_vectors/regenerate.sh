#!/bin/sh
# Writes ../embedded_vectors.txt from Kafka's own Java classes. Needs java, javac, mvn and Maven Central.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

dependency() { # artifact, version
    echo "<dependency><groupId>org.apache.kafka</groupId><artifactId>$1</artifactId><version>$2</version></dependency>"
}

cat > "$work/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
$(dependency kafka_2.13 4.4.0)
$(dependency connect-runtime 3.9.1 | sed 's#</dependency>#<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>#')
</dependencies></project>
POM
mvn -q -f "$work/pom.xml" dependency:build-classpath -Dmdep.outputFile="$work/path" -Dmdep.includeScope=runtime >&2
path=$(cat "$work/path")
javac -nowarn -encoding UTF-8 -d "$work" -cp "$path" "$here/Embedded.java"
java -cp "$work:$path" Embedded > "$here/../embedded_vectors.txt"
