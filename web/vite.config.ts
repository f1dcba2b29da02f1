import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

const server = 'http://127.0.0.1:8470'

export default defineConfig({
  plugins: [svelte()],
  // The server writes into the page below which prefix it is served.
  base: './',
  build: {
    outDir: '../src/windowpane/static',
    emptyOutDir: true,
    target: ['chrome123', 'firefox128', 'safari17.5'],
    // The page's policy allows no data: addresses and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  // The server guards against pages of other origins, so requests reach it under its own name.
  server: { proxy: { '/api': { target: server, ws: true, changeOrigin: true, rewriteWsOrigin: true } } },
})
