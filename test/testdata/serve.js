// Serves a handler as the template node20 does, on one machine: handler.js beside
// this file, called with event and context. It stands in for template and watchdog.
const http = require("http")
const handle = require("./handler.js")

http
  .createServer((request, response) => {
    const chunks = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", async () => {
      if (request.method === "GET") {
        return response.end("OK")
      }
      const text = Buffer.concat(chunks).toString()
      const json = (request.headers["content-type"] || "").includes("json")
      let status = 200
      const context = {
        status(code) {
          status = code
          return this
        },
        succeed: (value) => value,
      }
      const value = await handle({ body: json ? JSON.parse(text) : text, headers: request.headers }, context)
      const body = typeof value === "string" ? value : JSON.stringify(value)
      response.writeHead(status, { "Content-Type": typeof value === "string" ? "text/plain" : "application/json" })
      response.end(body)
    })
  })
  .listen(...process.env.farmhand_listen.split(":").reverse())
