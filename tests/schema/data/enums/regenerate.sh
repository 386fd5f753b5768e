#!/bin/sh
# Writes ../enums.txt from Kafka's own enumerations, among them the record types of its own topics. Needs java, javac, mvn and Maven Central.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
newest=$(cat "$here/../../../newest_release.txt")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

dependency() { # group, artifact, version: alone, since an enumeration needs little of what its artifact needs
    echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version><exclusions><exclusion>
        <groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
}

run() { # dependencies, arguments
    cat > "$work/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>$1 $(dependency org.slf4j slf4j-api 1.7.36) $(dependency org.slf4j slf4j-nop 1.7.36)</dependencies></project>
POM
    shift
    mvn -q -f "$work/pom.xml" dependency:build-classpath -Dmdep.outputFile="$work/path" -Dmdep.includeScope=runtime >&2
    path=$(cat "$work/path")
    javac -nowarn -d "$work" -cp "$path" "$here/Enums.java"
    java -cp "$work:$path" Enums "$@"
}

kafka() { # release, modules
    release=$1
    shift
    for each; do dependency org.apache.kafka "kafka-$each" "$release"; done
}

common=org.apache.kafka.common
clients=org.apache.kafka.clients
coordinator=org.apache.kafka.coordinator
remote=org.apache.kafka.server.log.remote
{
    run "$(kafka "$newest" clients metadata server server-common storage transaction-coordinator group-coordinator \
        share-coordinator)" \
        "__cluster_metadata=$common.metadata.MetadataRecordType" \
        "__consumer_offsets=$coordinator.group.generated.CoordinatorRecordType" \
        "__remote_log_metadata=$remote.metadata.storage.generated.MetadataRecordType" \
        "__share_group_state=$coordinator.share.generated.CoordinatorRecordType" \
        "__transaction_state=$coordinator.transaction.generated.CoordinatorRecordType" \
        errors \
        "acknowledge_type=$clients.consumer.AcknowledgeType" \
        "acl_operation=$common.acl.AclOperation" \
        "acl_pattern_type=$common.resource.PatternType" \
        "acl_permission_type=$common.acl.AclPermissionType" \
        "acl_resource_type=$common.resource.ResourceType" \
        "broker_fencing_change=org.apache.kafka.metadata.BrokerRegistrationFencingChange" \
        "broker_shutdown_change=org.apache.kafka.metadata.BrokerRegistrationInControlledShutdownChange" \
        "compression_type=$common.record.internal.CompressionType" \
        "config_operation=$clients.admin.AlterConfigOp\$OpType" \
        "config_resource_type=$common.config.ConfigResource\$Type" \
        "config_source=$common.requests.DescribeConfigsResponse\$ConfigSource" \
        "config_type=$common.requests.DescribeConfigsResponse\$ConfigType" \
        "control_record_type=$common.record.internal.ControlRecordType" \
        "coordinator_type=$common.requests.FindCoordinatorRequest\$CoordinatorType" \
        "delivery_state=org.apache.kafka.server.share.fetch.RecordState" \
        "election_type=$common.ElectionType" \
        "endpoint_type=$clients.admin.EndpointType" \
        "group_member_state=$coordinator.group.modern.MemberState" \
        "isolation_level=$common.IsolationLevel" \
        "kraft_version=org.apache.kafka.server.common.KRaftVersion" \
        "leader_recovery_state=org.apache.kafka.metadata.LeaderRecoveryState" \
        "scram_mechanism=$clients.admin.ScramMechanism" \
        "security_protocol=$common.security.auth.SecurityProtocol" \
        "share_acquire_mode=$clients.consumer.internals.ShareAcquireMode" \
        "streams_group_status=$common.requests.StreamsGroupHeartbeatResponse\$Status" \
        "streams_member_state=$coordinator.group.streams.MemberState" \
        "topology_description_status=$clients.admin.StreamsGroupTopologyDescriptionStatus" \
        "transaction_result=$common.requests.TransactionResult" \
        "transaction_state=$coordinator.transaction.TransactionState" \
        "transaction_version=org.apache.kafka.server.common.TransactionVersion" \
        "upgrade_type=$clients.admin.FeatureUpdate\$UpgradeType"
    run "$(kafka 3.9.1 clients metadata server-common storage-api)" \
        "remote_log_segment_state=$remote.storage.RemoteLogSegmentState" \
        "remote_partition_delete_state=$remote.storage.RemotePartitionDeleteState" \
        "zk_migration_state=org.apache.kafka.metadata.migration.ZkMigrationState"
    run "$(kafka 4.3.1 clients streams)" \
        "streams_assignor_error=org.apache.kafka.streams.processor.internals.assignment.AssignorError"
} > "$work/enums"
mv "$work/enums" "$here/../enums.txt"
