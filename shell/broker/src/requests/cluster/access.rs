//! ACLs, SCRAM credentials, client quotas: the controller decides, any node tells from its image.

use super::admin::{ask, response_of};
use crate::requests::call::{Answer, Call, Started};
use barnabas_api::{
    Refusal, k29_describe_acls, k30_create_acls, k31_delete_acls, k48_describe_client_quotas,
    k49_alter_client_quotas, k50_describe_user_scram_credentials, k51_alter_user_scram_credentials,
};
use barnabas_base::ErrorCode;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::{
    AlterClientQuotasRequest, AlterUserScramCredentialsRequest, CreateAclsRequest, DeleteAclsRequest,
    DescribeAclsRequest, DescribeClientQuotasRequest, DescribeUserScramCredentialsRequest,
};

pub fn create_acls(call: Call, request: CreateAclsRequest) -> Started {
    let work = k30_create_acls::plan(request);
    Started::wait(async move {
        let answer = response_of!(ask(&call, work.request).await, CreateAcls);
        Answer::Reply(work.pending.respond(answer).into())
    })
}

pub fn delete_acls(call: Call, request: DeleteAclsRequest) -> Started {
    let work = k31_delete_acls::plan(request, call.version);
    Started::wait(async move {
        let answer = response_of!(ask(&call, work.request).await, DeleteAcls);
        Answer::Reply(work.pending.respond(answer).into())
    })
}

pub fn alter_client_quotas(call: Call, request: AlterClientQuotasRequest) -> Started {
    let work = k49_alter_client_quotas::plan(request);
    Started::wait(async move {
        let answer = response_of!(ask(&call, work.request).await, AlterClientQuotas);
        Answer::Reply(work.pending.respond(answer).into())
    })
}

pub fn alter_user_scram_credentials(call: Call, request: AlterUserScramCredentialsRequest) -> Started {
    let work = k51_alter_user_scram_credentials::plan(request);
    Started::wait(async move {
        let answer = response_of!(ask(&call, work.request).await, AlterUserScramCredentials);
        Answer::Reply(work.pending.respond(answer).into())
    })
}

pub fn describe_acls(call: &Call, request: &DescribeAclsRequest) -> Started {
    let moment = call.moment();
    let response = k29_describe_acls::answer(request, &call.context(&moment));
    Started::Answer(call.room.reply(response))
}

pub fn describe_client_quotas(call: &Call, request: &DescribeClientQuotasRequest) -> Started {
    let moment = call.moment();
    let response = k48_describe_client_quotas::answer(request, &call.context(&moment));
    Started::Answer(call.room.reply(response))
}

pub fn describe_user_scram_credentials(
    call: &Call,
    request: &DescribeUserScramCredentialsRequest,
) -> Started {
    let moment = call.moment();
    let response = k50_describe_user_scram_credentials::answer(request, &call.context(&moment));
    Started::Answer(call.room.reply(response))
}
