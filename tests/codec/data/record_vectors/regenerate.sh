#!/bin/sh
# Writes ../record_vectors.jsonl.gz from Kafka's own Java classes. Needs java, javac, mvn and Maven Central.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

jars() { # one class path a client version, its native libraries by their own declared versions
    pom=$work/pom-$1.xml
    cat > "$pom" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>$1</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
POM
    mvn -q -f "$pom" dependency:build-classpath -Dmdep.outputFile="$work/cp-$1" -Dmdep.includeScope=runtime >&2
    cat "$work/cp-$1"
}

run() { # version, class, arguments...
    version=$1 class=$2
    shift 2
    path=$(jars "$version")
    mkdir -p "$work/$version"
    javac -nowarn -encoding UTF-8 -d "$work/$version" -cp "$path" "$here/Json.java" "$here/$class.java"
    java -cp "$work/$version:$path" "$class" "$@"
}

{
    run 0.8.2.2 VectorsOld 0.8.2.2
    run 0.9.0.1 VectorsOld 0.9.0.1
    run 0.10.2.2 Vectors010
    run 3.9.1 Vectors39
} > "$work/vectors.jsonl"
gzip -9 -n -c "$work/vectors.jsonl" > "$here/../record_vectors.jsonl.gz"
