// Command consultation plays a whole consultation against a running service, as a backend would: it owns the
// conversation, sends a contract for each turn, and keeps the state that comes back.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"businessassistant/contract"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8000", "address of the service")
	token := flag.String("token", "", "bearer token, where the service needs one")
	domain := flag.String("domain", contract.DefaultDomain, "consultation or startup_subsidy")
	flag.Parse()
	client := &contract.Client{URL: *url, Token: *token}
	if err := run(client, *domain); err != nil {
		fmt.Fprintln(os.Stderr, "consultation:", err)
		os.Exit(1)
	}
}

func run(client *contract.Client, domain string) error {
	switch domain {
	case "consultation":
		knowledge := []contract.RetrievedKnowledge{{
			Title:          "膝关节不稳定常见原因",
			Content:        "膝盖下坠感的可能原因包括股四头肌控制不足、髋膝踝力线异常和韧带损伤。走路加重时应当注意减少负重并观察肿胀。",
			Source:         "kb_001",
			RelevanceScore: 0.92,
		}}
		return play(client, contract.ConsultationState{Stage: "start"}, &knowledge, []string{
			"我膝盖有下坠感", "大概一周了", "走路的时候会加重", "疼痛6分，没有肿", "没有外伤",
		}, func(state contract.ConsultationState) ([]string, string) { return state.MissingSlots, state.Stage })
	case "startup_subsidy":
		return play(client, contract.StartupSubsidyState{Domain: domain, Stage: "start"}, nil, []string{
			"我想申请一次性创业补贴", "高校毕业生", "注册8个月了", "社保交了4个月", "招了3个人", "没有领取过",
		}, func(state contract.StartupSubsidyState) ([]string, string) { return state.MissingSlots, state.Stage })
	}
	return fmt.Errorf("unknown domain %q", domain)
}

// play sends the messages one after the other; the last turn is streamed. It prints one JSON object a turn.
func play[S any](
	client *contract.Client, state S, knowledge *[]contract.RetrievedKnowledge, messages []string,
	progress func(S) ([]string, string),
) error {
	var recent []contract.RecentMessage
	for at, message := range messages {
		sent := next(at, message, state, recent, knowledge)
		if verdict := contract.Check(mustJSON(sent)); !verdict.OK() {
			return fmt.Errorf("turn %d would be refused: %v", at+1, verdict.Faults)
		}
		answer, err := ask(client, sent, at == len(messages)-1)
		if err != nil {
			return fmt.Errorf("turn %d: %w", at+1, err)
		}
		state = answer.ConsultationState
		recent = append(recent, said("user", message, sent.TurnID), said("assistant", answer.Answer, sent.TurnID))
		fmt.Println(string(mustJSON(answer)))
	}
	if missing, stage := progress(state); len(missing) > 0 || stage != "ready" {
		return fmt.Errorf("the consultation ended at stage %q with %v missing", stage, missing)
	}
	return nil
}

func next[S any](
	at int, message string, state S, recent []contract.RecentMessage, knowledge *[]contract.RetrievedKnowledge,
) contract.ContextContractOf[S] {
	return contract.ContextContractOf[S]{
		SessionID:   "conv_example",
		TurnID:      fmt.Sprintf("turn_%d", at+1),
		UserMessage: message,
		Context: contract.ContextBundleOf[S]{
			RecentMessages:     recent,
			ConsultationState:  state,
			RetrievedKnowledge: knowledge,
		},
		Meta: contract.ContextContractMeta{
			ContextVersion:       contract.SpokenVersion,
			TokenBudget:          8000,
			IncludedMessageCount: int64(len(recent)),
		},
	}
}

func ask[S any](
	client *contract.Client, sent contract.ContextContractOf[S], isStreamed bool,
) (contract.ContextAnswerOf[S], error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if !isStreamed {
		return contract.Turn(ctx, client, sent)
	}
	shown := ""
	answer, err := contract.Stream(ctx, client, sent, func(text string) { shown += text }, func() { shown = "" })
	if err == nil && shown != answer.Answer {
		err = fmt.Errorf("the stream showed %q, the answer is %q", shown, answer.Answer)
	}
	return answer, err
}

func said(role, content, turnID string) contract.RecentMessage {
	now := time.Now().Format(time.RFC3339Nano)
	return contract.RecentMessage{Role: role, Content: content, TurnID: turnID, Timestamp: now}
}

func mustJSON(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}
