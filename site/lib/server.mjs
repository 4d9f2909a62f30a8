// Serves the built site on loopback.
import { createReadStream, statSync } from "node:fs"
import { createServer } from "node:http"
import { extname, join, normalize } from "node:path"
import { dist } from "./paths.mjs"

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2"
}

const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Returns the file for a URL's path, or undefined if the site has no such file. */
const fileOf = (url) => {
  let path
  try {
    path = normalize(decodeURIComponent(new URL(url, "http://localhost").pathname))
  } catch {
    return undefined
  }
  return [path, `${path}.html`, join(path, "index.html")].map((name) => join(dist, name)).find(isFile)
}

/** Starts the server. If the port is 0, the system picks a free one. */
export const serve = (port) =>
  new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      const file = fileOf(request.url)
      response.writeHead(file === undefined ? 404 : 200, {
        "content-type": types[extname(file ?? "404.html")] ?? "application/octet-stream"
      })
      createReadStream(file ?? join(dist, "404.html")).pipe(response)
    })
    server.on("error", reject)
    server.listen(port, "127.0.0.1", () => resolve({ server, url: `http://127.0.0.1:${server.address().port}` }))
  })
