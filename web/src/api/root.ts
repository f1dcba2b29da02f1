/** The prefix below which the server is reached, such as `/pane`; empty at the top of its host. The server says it. */

export const ROOT = typeof document === 'undefined' ? '' : read()

function read(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="windowpane-root"]')
  return meta?.content ?? ''
}

/** Tell whether a path of this host is one of this server. */
export function isBelowRoot(path: string, root: string = ROOT): boolean {
  return path === root || path.startsWith(`${root}/`)
}

/** Return a path of this server without the prefix. */
export function withoutRoot(path: string, root: string = ROOT): string {
  return isBelowRoot(path, root) ? path.slice(root.length) || '/' : path
}
