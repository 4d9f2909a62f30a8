import type { Plugin } from "rolldown"

export const annotatePure: Plugin
