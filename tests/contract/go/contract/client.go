package contract

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Client calls the service. Token is sent as a bearer token where it is not empty.
type Client struct {
	URL   string
	Token string
	HTTP  *http.Client
}

// Problem is an RFC 9457 body; it is the error of a refused contract.
type Problem struct {
	Status    int     `json:"status"`
	Code      string  `json:"code"`
	Detail    string  `json:"detail"`
	RequestID string  `json:"request_id"`
	Retryable bool    `json:"retryable"`
	Errors    []Fault `json:"errors"`
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%s (%d): %s %v, request %s", p.Code, p.Status, p.Detail, p.Errors, p.RequestID)
}

// Turn sends one contract and waits for its answer. A refusal is a *Problem.
func Turn[S any](ctx context.Context, client *Client, sent ContextContractOf[S]) (ContextAnswerOf[S], error) {
	var answer ContextAnswerOf[S]
	response, err := client.post(ctx, "/v1/context/turns", sent)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer, err
	}
	return answer, Decode(body, &answer)
}

// Stream sends one contract and calls onText with checked text as it comes. onReset withdraws all text so far.
func Stream[S any](
	ctx context.Context, client *Client, sent ContextContractOf[S], onText func(string), onReset func(),
) (ContextAnswerOf[S], error) {
	var answer ContextAnswerOf[S]
	response, err := client.post(ctx, "/v1/context/turns/stream", sent)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<24)
	event := ""
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "event: ") {
			event = line[len("event: "):]
		}
		if !strings.HasPrefix(line, "data: ") {
			continue
		}
		data := []byte(line[len("data: "):])
		switch event {
		case "token":
			var token struct{ Text string }
			if err := json.Unmarshal(data, &token); err != nil {
				return answer, err
			}
			onText(token.Text)
		case "reset":
			onReset()
		case "done":
			return answer, Decode(data, &answer)
		case "error":
			problem := &Problem{}
			if err := json.Unmarshal(data, problem); err != nil {
				return answer, err
			}
			return answer, problem
		}
	}
	if err := lines.Err(); err != nil {
		return answer, err
	}
	return answer, io.ErrUnexpectedEOF
}

func (c *Client) post(ctx context.Context, path string, sent any) (*http.Response, error) {
	body, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	http := c.HTTP
	if http == nil {
		http = defaultHTTP
	}
	response, err := http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == 200 {
		return response, nil
	}
	defer response.Body.Close()
	problem := &Problem{Status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(problem); err != nil {
		return nil, fmt.Errorf("status %d without a problem: %w", response.StatusCode, err)
	}
	return nil, problem
}

var defaultHTTP = &http.Client{}
