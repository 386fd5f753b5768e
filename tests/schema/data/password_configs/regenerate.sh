#!/bin/sh
# Adds to kwiresniff/schema/data/password_configs.txt what releases of Kafka have of configs that are typed PASSWORD, or
# sound as if they were: brokers', clients', Connect's and MirrorMaker's. regenerate.sh [RELEASE...], by default the
# newest one, from 0.10.2 on. A name stays when Kafka drops it, since captures stay. Needs java, javac, mvn and Maven
# Central.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../../..
found=$root/kwiresniff/schema/data/password_configs.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- "$(cat "$root/tests/newest_release.txt")"

path_of() { # artifact, release: the artifact with all that it needs, or nothing when there is no such release of it
    cat > "$work/pom.xml" << POM
<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>$1</artifactId><version>$2</version>
<exclusions><exclusion><groupId>org.apache.kafka</groupId><artifactId>kafka-tools-api</artifactId></exclusion></exclusions></dependency>
</dependencies></project>
POM
    rm -f "$work/path"
    mvn -q -B -f "$work/pom.xml" dependency:build-classpath -Dmdep.outputFile="$work/path" \
        -Dmdep.includeScope=runtime > "$work/log" 2>&1 && cat "$work/path" || echo "there is no $1 $2" >&2
}

touch "$found"
for release; do
    case $release in
        0.* | 1.0* | 1.1* ) broker=kafka_2.11 ;;
        2.[0-3].*) broker=kafka_2.12 ;;
        *) broker=kafka_2.13 ;;
    esac
    for artifact in "$broker" connect-runtime connect-mirror; do
        path=$(path_of "$artifact" "$release")
        [ -n "$path" ] || continue
        mkdir -p "$work/classes"
        javac -nowarn -d "$work/classes" -cp "$path" "$here/PasswordConfigs.java"
        jars=$(echo "$path" | tr ':' '\n' | grep '/org/apache/kafka/')
        # shellcheck disable=SC2086 # one argument a jar
        java -cp "$work/classes:$path" PasswordConfigs $jars > "$work/names" 2> "$work/log" ||
            { cat "$work/log" >&2; exit 1; }
        echo "$artifact $release: $(tail -n 1 "$work/log")" >&2
        LC_ALL=C sort -u "$found" "$work/names" > "$work/union"
        cp "$work/union" "$found"
    done
done
