/** Which part of an agent a file of its folder is, and small facts about such files. */

import type { AgentPart } from '../routing/route.ts'

/** Return the part of an agent by which a file can be corrected, or null for one that is not read. */
export function partOfFile(file: string): AgentPart | null {
  if (file === 'agent.yaml') return { kind: 'settings' }
  const prompt = /^prompts\/(core|default_site|sites\/[^/]+)\.md$/.exec(file)?.[1]
  if (prompt) return { kind: 'prompt', name: prompt }
  return file === 'mcp.json' || /^(rules|references|prompts\/sites)\/.+\.md$/i.test(file)
    ? { kind: 'file', name: file }
    : null
}

/** A file's text without its front matter. */
export function withoutFront(raw: string): string {
  return raw.replace(/^---\r?\n[\s\S]*?\r?\n---[ \t]*(\r?\n|$)/, '')
}

/** Names as people type them, `a, b c`, as a list. */
export function namesIn(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}

/** A prompt as people call it. */
export function promptTitle(name: string): string {
  if (name === 'core') return 'Core prompt'
  if (name === 'default_site') return 'Default for sites'
  return name.replace(/^sites\//, '')
}
