import { expect, test } from 'vitest'
import { href, parse, type Address } from './route.ts'

const NAME = 'a/b c?&#%é'
const ADDRESSES: Address[] = [
  { place: { view: 'new' }, applet: null },
  { place: { view: 'new', agent: NAME }, applet: null },
  { place: { view: 'session', session: 'ses_1' }, applet: null },
  { place: { view: 'session', session: 'ses_1', turn: 12 }, applet: null },
  {
    place: { view: 'session', session: 'ses_1', turn: 1, item: { type: 'tool', name: NAME, server: 'my server' } },
    applet: null,
  },
  { place: { view: 'session', session: 'ses_1', turn: 2, prompt: '' }, applet: null },
  { place: { view: 'session', session: 'ses_1', turn: 2, prompt: 'history' }, applet: null },
  { place: { view: 'session', session: 'ses_1', turn: 2, beside: true }, applet: null },
  { place: { view: 'agents' }, applet: null },
  { place: { view: 'agent', agent: NAME }, applet: null },
  { place: { view: 'agent', agent: 'pane', item: { type: 'rule', name: NAME } }, applet: null },
  { place: { view: 'agent', agent: 'pane', part: { kind: 'new', type: 'site' } }, applet: null },
  { place: { view: 'agent', agent: 'pane', part: { kind: 'prompt', name: 'sites/example.org' } }, applet: null },
  { place: { view: 'agent', agent: 'pane', part: { kind: 'file', name: 'rules/a b/ü.md' } }, applet: null },
  { place: { view: 'agent', agent: 'pane', part: { kind: 'settings' } }, applet: null },
  { place: { view: 'analytics' }, applet: null },
  { place: { view: 'shared' }, applet: null },
  { place: { view: 'analytics', filters: { days: '30', agent: NAME, model: 'openai:gpt-4o' } }, applet: null },
  {
    place: { view: 'session', session: 'ses_1' },
    applet: {
      slug: 'text-editor',
      params: [
        ['path', '/a b/ü&=.md'],
        ['line', '2'],
      ],
    },
  },
]

test.each(ADDRESSES)('every place has an address that leads to it: %j', (address) => {
  expect(parse(href(address.place, address.applet))).toEqual(address)
})

test.each([
  '/nowhere',
  '/s',
  '/s/a/t/0',
  '/s/a/t/x',
  '/s/a/t/1/items/thing/x',
  '/agents/a/rule',
  '/agents/a/new/tool',
  '/%E0%A4%A',
])('%s leads nowhere', (path) => {
  expect(parse(path).place.view).toBe('unknown')
})

test.each(ADDRESSES)('below a prefix too: %j', ({ place, applet }) => {
  const address = href(place, applet, '/my/pane')

  expect(address.startsWith('/my/pane/')).toBe(true)
  expect(parse(address, '/my/pane')).toEqual({ place, applet })
  expect(parse(`/my${address}`, '/my/pane').place.view).toBe('unknown')
})
