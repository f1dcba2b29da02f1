/** Which part of an agent a file of its folder is, and small facts about such files. */

import type { AgentPart, ItemName } from '../route.ts'

type Shown = { item: ItemName } | { part: AgentPart }

/** Return where a file can be edited, or null for one that only the disk knows. */
export function placeOfFile(file: string): Shown | null {
  const [, folder, name] = /^(rules|references)\/([A-Za-z0-9_-]+)\.md$/.exec(file) ?? []
  if (folder && name) return { item: { type: folder === 'rules' ? 'rule' : 'reference', name } }
  const prompt = /^prompts\/(core|default_site|sites\/[^/]+)\.md$/.exec(file)?.[1]
  if (prompt) return { part: { kind: 'prompt', name: prompt } }
  return file === 'agent.yaml' ? { part: { kind: 'settings' } } : null
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
