module businessassistant

go 1.18
