package driver

import "context"

// BatchClaimer claims many keys in one round trip. Each claim is decided by
// itself, as [Driver.Claim] decides it. No key occurs twice in a batch.
type BatchClaimer interface {
	// ClaimBatch returns one answer for each claim, in their order. An error
	// of the call says that none of them has a known answer.
	ClaimBatch(ctx context.Context, p ClaimBatchParams) (ClaimBatchResult, error)
}

// ClaimBatchParams are the parameters of [BatchClaimer.ClaimBatch].
type ClaimBatchParams struct {
	Claims []ClaimParams
}

// ClaimBatchResult is the answer to [BatchClaimer.ClaimBatch].
type ClaimBatchResult struct {
	Claims []ClaimAnswer
}

// ClaimAnswer is the answer to one claim of a batch.
type ClaimAnswer struct {
	Result ClaimResult
	Err    error
}

// BatchCompleter completes many claims in one round trip, each as
// [Driver.Complete] does.
type BatchCompleter interface {
	CompleteBatch(ctx context.Context, p CompleteBatchParams) (CompleteBatchResult, error)
}

// CompleteBatchParams are the parameters of [BatchCompleter.CompleteBatch].
type CompleteBatchParams struct {
	Completions []CompleteParams
}

// CompleteBatchResult is the answer to [BatchCompleter.CompleteBatch].
type CompleteBatchResult struct {
	Completions []CompleteAnswer
}

// CompleteAnswer is the answer to one completion of a batch.
type CompleteAnswer struct {
	Result CompleteResult
	Err    error
}

// BatchRenewer renews many leases in one round trip, each as [Driver.Renew] does.
type BatchRenewer interface {
	RenewBatch(ctx context.Context, p RenewBatchParams) (RenewBatchResult, error)
}

// RenewBatchParams are the parameters of [BatchRenewer.RenewBatch].
type RenewBatchParams struct {
	Renewals []RenewParams
}

// RenewBatchResult is the answer to [BatchRenewer.RenewBatch].
type RenewBatchResult struct {
	Renewals []RenewAnswer
}

// RenewAnswer is the answer to one renewal of a batch.
type RenewAnswer struct {
	Result RenewResult
	Err    error
}
