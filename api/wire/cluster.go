package wire

type AdmissionRequest struct {
	Mode Opt[string] `json:"mode"`
}

type InvitationRequest struct {
	Node      Opt[string]  `json:"node"`
	ExpiresIn Opt[float64] `json:"expires_in"`
}

// MaxJoinAddresses bounds the addresses of one join.
const MaxJoinAddresses = 100

type TransferRequest struct {
	ID Opt[string] `json:"id"`
}

type JoinRequest struct {
	Addresses List[string, AddressLimit] `json:"addresses"`
}

type LogLevelRequest struct {
	Level Opt[string] `json:"level"`
}

type PromoteRequest struct {
	Force Opt[bool] `json:"force"`
}
