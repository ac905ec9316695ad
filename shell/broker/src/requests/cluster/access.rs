//! ACLs, SCRAM credentials, delegation tokens, client quotas: the controller decides, any node tells from its image.

use super::admin::{ask, response_of};
use crate::requests::call::{Answer, Call, Started};
use barnabas_api::{
    Plan, Refusal, k29_describe_acls, k30_create_acls, k31_delete_acls, k38_create_delegation_token,
    k39_renew_delegation_token, k40_expire_delegation_token, k41_describe_delegation_token,
    k48_describe_client_quotas, k49_alter_client_quotas, k50_describe_user_scram_credentials,
    k51_alter_user_scram_credentials,
};
use barnabas_base::ErrorCode;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::{
    AlterClientQuotasRequest, AlterUserScramCredentialsRequest, CreateAclsRequest,
    CreateDelegationTokenRequest, DeleteAclsRequest, DescribeAclsRequest, DescribeClientQuotasRequest,
    DescribeDelegationTokenRequest, DescribeUserScramCredentialsRequest, ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
};
use bytes::Bytes;

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

pub fn create_delegation_token(call: Call, request: CreateDelegationTokenRequest) -> Started {
    let moment = call.moment();
    match k38_create_delegation_token::plan(request, call.version, call.route(), &call.context(&moment)) {
        Plan::Answer(response) => Started::reply(response),
        Plan::Work(work) => Started::wait(async move {
            let answer = response_of!(ask(&call, work.request).await, CreateDelegationToken);
            Answer::Reply(work.pending.respond(answer).into())
        }),
    }
}

pub fn renew_delegation_token(call: Call, request: RenewDelegationTokenRequest) -> Started {
    let moment = call.moment();
    if let Some(refused) = k39_renew_delegation_token::refuse(call.route(), &call.context(&moment)) {
        return Started::reply(refused);
    }
    Started::wait(async move {
        let answer = response_of!(ask(&call, request).await, RenewDelegationToken);
        Answer::Reply(k39_renew_delegation_token::respond(answer).into())
    })
}

pub fn expire_delegation_token(call: Call, request: ExpireDelegationTokenRequest) -> Started {
    let moment = call.moment();
    if let Some(refused) = k40_expire_delegation_token::refuse(call.route(), &call.context(&moment)) {
        return Started::reply(refused);
    }
    Started::wait(async move {
        let answer = response_of!(ask(&call, request).await, ExpireDelegationToken);
        Answer::Reply(k40_expire_delegation_token::respond(answer).into())
    })
}

pub fn describe_delegation_token(call: &Call, request: &DescribeDelegationTokenRequest) -> Started {
    let moment = call.moment();
    let key = call.session.node.logins.token_key();
    let hmac = key.map(|key| |id: &str| Bytes::copy_from_slice(key.hmac(id).bytes()));
    let hmac = hmac.as_ref().map(|hmac| hmac as &dyn Fn(&str) -> Bytes);
    let (version, route) = (call.version, call.route());
    let response =
        k41_describe_delegation_token::answer(request, version, route, hmac, &call.context(&moment));
    Started::Answer(call.room.reply(response))
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
