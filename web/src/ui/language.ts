/** What a file is written in, told by its name. */

const BY_ENDING: Record<string, string> = {
  bash: 'bash',
  cjs: 'javascript',
  css: 'css',
  diff: 'diff',
  go: 'go',
  htm: 'xml',
  html: 'xml',
  java: 'java',
  js: 'javascript',
  json: 'json',
  jsonl: 'json',
  jsx: 'javascript',
  markdown: 'markdown',
  md: 'markdown',
  mjs: 'javascript',
  mts: 'typescript',
  patch: 'diff',
  py: 'python',
  pyi: 'python',
  rs: 'rust',
  sh: 'bash',
  sql: 'sql',
  svelte: 'xml',
  svg: 'xml',
  ts: 'typescript',
  tsx: 'typescript',
  vue: 'xml',
  xml: 'xml',
  yaml: 'yaml',
  yml: 'yaml',
  zsh: 'bash',
}

/** Return the language of a file, or nothing for one that has no colours. */
export function languageOf(file: string): string {
  const ending = /\.(\w+)$/.exec(file)?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(BY_ENDING, ending) ? BY_ENDING[ending]! : ''
}
