"""How results look in notebooks (HTML with SVG, no script) and on terminals (text)."""
