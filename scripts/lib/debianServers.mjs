// Fetches servers from other Debian releases for the tests. They are unpacked into .bootstrap with their release's
// libraries. apt-get works on separate folders there: it installs nothing, needs no root, and uses only the system's
// mirror address.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { root } from "./workspace.mjs"

/** The servers that Debian has, each as its release and the name of the program. */
export const debianServers = [
  "trixie/redis",
  "forky/redis",
  "bookworm-backports/valkey",
  "trixie/valkey",
  "forky/valkey",
  "bookworm-backports/redict"
]

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

const run = (command, args) => {
  const { error, status, stderr, stdout } = spawnSync(command, args, {
    encoding: "utf8",
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
  })
  if (status !== 0) throw new Error(`${command} failed: ${(error?.message ?? stderr).trim()}`)
  return stdout
}

/** Returns this system's mirror, or the one in `DEBIAN_MIRROR`. */
const mirrorOf = () => {
  if (process.env.DEBIAN_MIRROR) return process.env.DEBIAN_MIRROR
  const system = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : ""
  const codename = /^VERSION_CODENAME=(.+)$/m.exec(system)?.[1]
  if (!/^ID=debian$/m.test(system)) throw new Error("this system is not Debian, and DEBIAN_MIRROR is not set")
  const format = ["--no-release-info", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"]
  const target = run("apt-get", ["indextargets", ...format]).split("\n").find((line) => line.startsWith(`${codename} `))
  if (target === undefined) throw new Error(`apt has no source for ${codename}: set DEBIAN_MIRROR`)
  return target.split(" ")[1]
}

/** Downloads a package with all its dependencies. Returns the paths. */
const download = (release, name, folder) => {
  const archives = join(folder, "archives")
  mkdirSync(join(archives, "partial"), { recursive: true })
  mkdirSync(join(folder, "lists/partial"), { recursive: true })
  // No package counts as installed, so the libraries are downloaded, too
  writeFileSync(join(folder, "status"), "")
  const releases = release.endsWith("-backports") ? [release.slice(0, -"-backports".length), release] : [release]
  const mirror = mirrorOf()
  const sources = releases.map((one) => `deb [signed-by=${keyring}] ${mirror} ${one} main\n`)
  writeFileSync(join(folder, "sources.list"), sources.join(""))
  const settings = {
    "Dir::Etc::sourcelist": join(folder, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
    "Dir::State": folder,
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": folder,
    "Debug::NoLocking": "1",
    "APT::Sandbox::User": "",
    // A list that cannot be fetched is an error, not a warning
    "APT::Update::Error-Mode": "any",
    "Acquire::Languages": "none",
    "Acquire::Retries": "3"
  }
  const options = ["-qq", ...Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`])]
  run("apt-get", [...options, "update"])
  run("apt-get", [...options, "--yes", "--no-install-recommends", "--download-only", "install", name])
  return readdirSync(archives).filter((file) => file.endsWith(".deb")).map((file) => join(archives, file))
}

/**
 * Returns the path of a program that starts the server. If the server cannot be fetched, throws an error with the
 * reason.
 */
export const debianServer = (server) => {
  const [release, name] = server.split("/")
  const folder = join(root, ".bootstrap/servers", release, name)
  const program = join(folder, `${name}-server`)
  if (existsSync(program)) return program
  if (!existsSync(keyring)) throw new Error("Debian's archive keyring is not installed")
  const system = join(folder, "system")
  const downloads = join(folder, "downloads")
  for (const path of download(release, `${name}-server`, downloads)) run("dpkg-deb", ["--extract", path, system])
  rmSync(downloads, { recursive: true })
  const loader = readdirSync(system, { recursive: true, withFileTypes: true })
    .find((file) => file.isFile() && /^ld-linux.*\.so/.test(file.name))
  const platform = basename(loader.parentPath)
  const libraries = ["usr/lib", "lib"].map((path) => join(system, path, platform)).join(":")
  const command = [
    join(loader.parentPath, loader.name),
    "--library-path",
    libraries,
    join(system, "usr/bin", `${name}-server`)
  ]
  writeFileSync(program, `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(" ")} "$@"\n`, { mode: 0o755 })
  return program
}
