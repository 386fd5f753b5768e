#!/bin/sh
# Writes ../embedded_vectors.txt from Kafka's own Java classes. Needs java, javac, mvn and Maven Central.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

dependency() { # group, artifact, version: alone, since the classes used here need little of what their artifacts need
    echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version><exclusions><exclusion>
        <groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
}

run() { # class, dependencies
    cat > "$work/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>$2 $(dependency org.slf4j slf4j-api 1.7.36) $(dependency org.slf4j slf4j-nop 1.7.36)</dependencies></project>
POM
    mvn -q -f "$work/pom.xml" dependency:build-classpath -Dmdep.outputFile="$work/path" -Dmdep.includeScope=runtime >&2
    path=$(cat "$work/path")
    javac -nowarn -encoding UTF-8 -d "$work" -cp "$path" "$here/$1.java"
    java -cp "$work:$path" "$1"
}

modules="clients metadata server-common coordinator-common group-coordinator transaction-coordinator share-coordinator"
{
    run Embedded "$(for each in $modules; do dependency org.apache.kafka "kafka-$each" 4.4.0; done)
        $(dependency org.apache.kafka connect-runtime 3.9.1)"
    run Streams "$(for each in clients streams; do dependency org.apache.kafka "kafka-$each" 4.3.1; done)"
    run StreamsOld "$(for each in clients streams; do dependency org.apache.kafka "kafka-$each" 1.1.1; done)"
    run Telemetry "$(dependency org.apache.kafka kafka-clients 4.4.0) $(dependency com.github.luben zstd-jni 1.5.7-17)
        $(dependency at.yawk.lz4 lz4-java 1.11.2) $(dependency org.xerial.snappy snappy-java 1.1.10.7)"
} > "$work/vectors"
mv "$work/vectors" "$here/../embedded_vectors.txt"
