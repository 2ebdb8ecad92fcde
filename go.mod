module ccagent

go 1.25.0
