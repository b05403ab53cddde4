-- wrk script: asks for the paths listed in a file (the first argument), one after the other, over and over. Behind a
-- path may stand a range of bytes, FIRST-LAST. With a second argument the requests say Cache-Control: no-cache.
-- At the end it prints one line of JSON after the word RESULT.

local requests = {}
local at = 0

function init(args)
  if args[2] then wrk.headers["Cache-Control"] = "no-cache" end
  for line in io.lines(args[1]) do
    local path, range = line:match("^(%S+)%s*(%S*)$")
    wrk.headers["Range"] = range ~= "" and "bytes=" .. range or nil
    requests[#requests + 1] = wrk.format("GET", path)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency, _)
  local errors = summary.errors
  print(string.format(
    'RESULT {"requests": %d, "bytes": %d, "seconds": %.6f, "p50_ms": %.3f, "p99_ms": %.3f, "errors": %d}',
    summary.requests, summary.bytes, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
