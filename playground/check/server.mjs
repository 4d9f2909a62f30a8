// Serves the built page on loopback.
import { createReadStream, statSync } from "node:fs"
import { createServer } from "node:http"
import { extname, join, normalize } from "node:path"
import { fileURLToPath } from "node:url"

export const dist = fileURLToPath(new URL("../dist", import.meta.url))

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm"
}

const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Starts the server. With port 0, the system chooses a free port. */
export const serve = (port) =>
  new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      const path = normalize(new URL(request.url, "http://localhost").pathname)
      const file = [join(dist, path), join(dist, path, "index.html")].find(isFile)
      response.writeHead(file === undefined ? 404 : 200, { "content-type": types[extname(file ?? "")] ?? "text/plain" })
      if (file === undefined) response.end("not found")
      else createReadStream(file).pipe(response)
    })
    server.on("error", reject)
    server.listen(port, "127.0.0.1", () => resolve({ server, url: `http://127.0.0.1:${server.address().port}/` }))
  })
