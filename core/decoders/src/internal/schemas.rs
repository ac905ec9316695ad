//! The schemas of records that files hold. A test checks that none is missing.

macro_rules! schemas {
    ($($path:literal),* $(,)?) => {
        &[$(include_str!(concat!("../../../messages/schema/", $path, ".msg"))),*]
    };
}

pub const GROUPS: &[&str] = schemas![
    "coordinator/group/c00_legacy_offset_commit",
    "coordinator/group/c01_offset_commit",
    "coordinator/group/c02_group_metadata",
    "coordinator/group/c03_consumer_group_metadata",
    "coordinator/group/c04_consumer_group_partition_metadata",
    "coordinator/group/c05_consumer_group_member_metadata",
    "coordinator/group/c06_consumer_group_target_assignment_metadata",
    "coordinator/group/c07_consumer_group_target_assignment_member",
    "coordinator/group/c08_consumer_group_current_member_assignment",
    "coordinator/group/c10_share_group_member_metadata",
    "coordinator/group/c11_share_group_metadata",
    "coordinator/group/c12_share_group_target_assignment_metadata",
    "coordinator/group/c13_share_group_target_assignment_member",
    "coordinator/group/c14_share_group_current_member_assignment",
    "coordinator/group/c15_share_group_state_partition_metadata",
    "coordinator/group/c16_consumer_group_regular_expression",
    "coordinator/group/c17_streams_group_metadata",
    "coordinator/group/c19_streams_group_member_metadata",
    "coordinator/group/c20_streams_group_target_assignment_metadata",
    "coordinator/group/c21_streams_group_target_assignment_member",
    "coordinator/group/c22_streams_group_current_member_assignment",
    "coordinator/group/c23_streams_group_topology",
];
pub const TRANSACTIONS: &[&str] = schemas!["coordinator/transaction/c00_transaction_log",];
pub const SHARES: &[&str] =
    schemas!["coordinator/share/c00_share_snapshot", "coordinator/share/c01_share_update",];
pub const METADATA: &[&str] = schemas![
    "metadata/r00_register_broker",
    "metadata/r01_unregister_broker",
    "metadata/r02_topic",
    "metadata/r03_partition",
    "metadata/r04_config",
    "metadata/r05_partition_change",
    "metadata/r07_fence_broker",
    "metadata/r08_unfence_broker",
    "metadata/r09_remove_topic",
    "metadata/r10_delegation_token",
    "metadata/r11_user_scram_credential",
    "metadata/r12_feature_level",
    "metadata/r14_client_quota",
    "metadata/r15_producer_ids",
    "metadata/r17_broker_registration_change",
    "metadata/r18_access_control_entry",
    "metadata/r19_remove_access_control_entry",
    "metadata/r20_no_op",
    "metadata/r21_zk_migration_state",
    "metadata/r22_remove_user_scram_credential",
    "metadata/r23_begin_transaction",
    "metadata/r24_end_transaction",
    "metadata/r25_abort_transaction",
    "metadata/r26_remove_delegation_token",
    "metadata/r27_register_controller",
    "metadata/r28_clear_elr",
    "metadata/r29_unregister_controller",
];
pub const CONTROL: &[&str] = schemas![
    "control/kraft_version_record",
    "control/leader_change_message",
    "control/snapshot_footer_record",
    "control/snapshot_header_record",
    "control/voters_record",
];
pub const CONSUMER: &[&str] =
    schemas!["consumer/consumer_protocol_assignment", "consumer/consumer_protocol_subscription",];
