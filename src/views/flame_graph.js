// Zoom, search and keyboard of a flame graph. All it needs is in the picture: each box is an <svg
// class="b"> with its start and weight (data-s, data-w), a <title> (name, newline, details), a
// <rect> and perhaps a <text>. Without this script the picture is complete, only still.
(function () {
  'use strict';
  var SVG = 'http://www.w3.org/2000/svg';
  var HTML = 'http://www.w3.org/1999/xhtml';
  var HINT = 'Click or Enter: zoom.  Escape: back.  / or Ctrl+F: search.  Arrows: move.';
  var MATCH_FILL = '#7b2d8e';
  var root = (document.currentScript && document.currentScript.ownerSVGElement) ||
      document.documentElement;
  var area = root.getElementById('boxes');
  var head = root.getElementById('head');
  var status = root.getElementById('status');
  var total = +root.getAttribute('data-total') || 1;
  var boxes = [], rows = {}, zoomed = null, current = null, matcher = null, field = null;

  Array.prototype.forEach.call(area.getElementsByClassName('b'), function (element) {
    var words = element.getElementsByTagName('title')[0].textContent.split('\n');
    var rect = element.getElementsByTagName('rect')[0];
    var box = {
      index: boxes.length, element: element, rect: rect, fill: rect.getAttribute('fill'),
      text: element.getElementsByTagName('text')[0] || null,
      name: words[0], details: words.slice(1).join(' '),
      start: +element.getAttribute('data-s'), weight: +element.getAttribute('data-w'),
      y: +element.getAttribute('y'), matches: false, visible: true
    };
    element.box = box;
    boxes.push(box);
    (rows[box.y] = rows[box.y] || []).push(box);
  });
  if (!boxes.length) return;
  var rootBox = boxes[0];
  var rowHeight = 17, upward = root.getAttribute('data-root-on-top') !== '1';
  function depth(box) { return Math.abs(box.y - rootBox.y) / rowHeight; }
  function holds(outer, inner) {
    return outer.start <= inner.start && inner.start + inner.weight <= outer.start + outer.weight;
  }

  // ---- drawing ----
  // A letter of the font is about 6.7 pixels wide; what is wider all the same is cut by the box.
  function fit(name, pixels) {
    var letters = Math.floor((pixels - 5) / 6.7);
    if (letters < 3) return '';
    return name.length <= letters ? name : name.slice(0, letters - 1) + '\u2026';
  }
  function drawText(box, pixels) {
    var label = fit(box.name, pixels);
    if (!box.text) {
      if (!label) return;
      box.text = document.createElementNS(SVG, 'text');
      box.text.setAttribute('x', '3');
      box.text.setAttribute('y', '12');
      box.element.appendChild(box.text);
    }
    if (box.label !== label) box.text.textContent = box.label = label;
    box.text.setAttribute('fill', box.matches ? '#ffffff' : '#000000');
  }
  function paint(box) {
    box.rect.setAttribute('fill', box.matches ? MATCH_FILL : box.fill);
    if (box === current) {
      box.rect.setAttribute('stroke', '#000000');
      box.rect.setAttribute('stroke-width', '2.5');
    } else {
      box.rect.setAttribute('stroke', box.pixels >= 4 ? '#ffffff' : 'none');
      box.rect.setAttribute('stroke-width', '1');
    }
  }
  function draw() {
    var view = zoomed || rootBox, viewDepth = depth(view);
    var width = area.getBoundingClientRect().width || root.getBoundingClientRect().width;
    var across = root.getBoundingClientRect().width * 0.984;
    if (!(width > 0) || width > across) width = across;
    boxes.forEach(function (box) {
      var d = depth(box), above = d < viewDepth && holds(box, view);
      var inside = d >= viewDepth && holds(view, box);
      box.visible = above || inside;
      box.element.setAttribute('display', box.visible ? 'inline' : 'none');
      if (!box.visible) return;
      var x = above ? 0 : (box.start - view.start) / view.weight;
      var w = above ? 1 : box.weight / view.weight;
      box.element.setAttribute('x', (100 * x).toFixed(4) + '%');
      box.element.setAttribute('width', (100 * w).toFixed(4) + '%');
      box.element.setAttribute('opacity', above ? '0.55' : '1');
      box.pixels = w * across;
      drawText(box, box.pixels);
      paint(box);
    });
    resetButton.setAttribute('display', zoomed ? 'inline' : 'none');
  }

  // ---- status line ----
  function percent(part) { return (100 * part / total).toFixed(2) + '%'; }
  function matchText() {
    if (!matcher) return '';
    // What matches, each sample once: the union of the boxes' spans.
    var spans = boxes.filter(function (box) { return box.matches; });
    var count = spans.length, end = 0, sum = 0;
    spans.sort(function (a, b) { return a.start - b.start || b.weight - a.weight; });
    spans.forEach(function (box) {
      var last = box.start + box.weight;
      if (last > end) {
        sum += last - Math.max(end, box.start);
        end = last;
      }
    });
    return 'Matched: ' + percent(sum) + ' in ' + count + (count === 1 ? ' box' : ' boxes');
  }
  function say(box) {
    status.textContent = box ? box.name + ' \u2014 ' + box.details : matchText() || HINT;
  }

  // ---- zoom ----
  function zoom(box) {
    zoomed = box && box !== rootBox ? box : null;
    draw();
    remember();
  }
  function parentOf(box) {
    var row = rows[box.y + (upward ? rowHeight : -rowHeight)] || [];
    return row.filter(function (other) { return holds(other, box); })[0] || null;
  }
  function move(key) {
    var from = current || zoomed || rootBox, to = null;
    var row = rows[from.y].filter(function (box) { return box.visible; });
    var at = row.indexOf(from);
    if (key === 'ArrowLeft') to = row[at - 1];
    if (key === 'ArrowRight') to = row[at + 1];
    if (key === (upward ? 'ArrowDown' : 'ArrowUp')) to = parentOf(from);
    if (key === (upward ? 'ArrowUp' : 'ArrowDown')) {
      // The widest of its children.
      (rows[from.y + (upward ? -rowHeight : rowHeight)] || []).forEach(function (box) {
        if (box.visible && holds(from, box) && (!to || box.weight > to.weight)) to = box;
      });
    }
    if (!to) return;
    var before = current;
    current = to;
    if (before) paint(before);
    paint(to);
    say(to);
    to.element.scrollIntoView({block: 'nearest'});
  }

  // ---- search ----
  // A regular expression, or the text itself where it is none; capitals count if there are any.
  function makeMatcher(term) {
    var flags = /[A-Z]/.test(term) ? '' : 'i';
    try {
      var expression = new RegExp(term, flags);
      return function (name) { return expression.test(name); };
    } catch (error) {
      return function (name) {
        return (flags ? name.toLowerCase() : name).indexOf(term) >= 0;
      };
    }
  }
  function search(term) {
    matcher = term ? makeMatcher(term) : null;
    matcher_term = term || '';
    boxes.forEach(function (box) { box.matches = !!matcher && matcher(box.name); });
    draw();
    say(null);
    remember();
  }
  var matcher_term = '';
  function openSearch() {
    if (!field) {
      var frame = document.createElementNS(SVG, 'foreignObject');
      frame.setAttribute('x', '70%');
      frame.setAttribute('y', '28');
      frame.setAttribute('width', '29%');
      frame.setAttribute('height', '26');
      field = document.createElementNS(HTML, 'input');
      field.setAttribute('type', 'text');
      field.setAttribute('placeholder', 'text or regular expression');
      field.setAttribute('aria-label', 'Search function names');
      field.style.cssText = 'width:95%;font:12px sans-serif;box-sizing:border-box';
      field.addEventListener('input', function () { search(field.value); });
      frame.appendChild(field);
      head.appendChild(frame);
      field.frame = frame;
    }
    field.frame.setAttribute('display', 'inline');
    field.value = matcher_term;
    field.focus();
    field.select();
  }
  function closeSearch() {
    if (field) {
      field.blur();
      field.frame.setAttribute('display', 'none');
    }
    search('');
  }

  // ---- the view in the address, so that it can be shared ----
  function remember() {
    var parts = [];
    if (zoomed) parts.push('zoom=' + zoomed.index);
    if (matcher_term) parts.push('search=' + encodeURIComponent(matcher_term));
    try {
      window.history.replaceState(null, '', '#' + parts.join('&'));
    } catch (error) {
      // A page that may not change its address shows the picture all the same.
    }
  }
  function recall() {
    var zoomTo = null, term = '';
    (window.location.hash || '').slice(1).split('&').forEach(function (part) {
      var at = part.indexOf('='), value = part.slice(at + 1);
      if (part.slice(0, at) === 'zoom') zoomTo = boxes[+value] || null;
      if (part.slice(0, at) === 'search') {
        try { term = decodeURIComponent(value); } catch (error) { term = ''; }
      }
    });
    if (zoomTo) zoom(zoomTo);
    if (term) search(term);
  }

  // ---- events ----
  function button(label, left, action) {
    var text = document.createElementNS(SVG, 'text');
    text.textContent = label;
    text.setAttribute('x', '99%');
    text.setAttribute('dx', left);
    text.setAttribute('y', '22');
    text.setAttribute('text-anchor', 'end');
    text.setAttribute('fill', '#0b5394');
    text.setAttribute('text-decoration', 'underline');
    text.setAttribute('cursor', 'pointer');
    text.addEventListener('click', action);
    head.appendChild(text);
    return text;
  }
  button('Search', '0', openSearch);
  var resetButton = button('Reset zoom', '-60', function () { zoom(null); });
  function boxOf(event) {
    for (var node = event.target; node && node !== root; node = node.parentNode) {
      if (node.box) return node.box;
    }
    return null;
  }
  area.setAttribute('cursor', 'pointer');
  area.addEventListener('click', function (event) {
    var box = boxOf(event);
    if (box) zoom(box);
  });
  area.addEventListener('mouseover', function (event) { say(boxOf(event)); });
  area.addEventListener('mouseout', function () { say(null); });
  window.addEventListener('keydown', function (event) {
    var typing = field && document.activeElement === field;
    if (event.key === 'Escape') {
      if (matcher || typing) closeSearch(); else zoom(null);
    } else if ((event.key === 'f' && (event.ctrlKey || event.metaKey)) ||
               (event.key === '/' && !typing)) {
      openSearch();
    } else if (typing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    } else if (event.key === 'Enter' && current) {
      zoom(current);
    } else if (event.key.indexOf('Arrow') === 0) {
      move(event.key);
    } else {
      return;
    }
    event.preventDefault();
  });
  window.addEventListener('resize', draw);
  if (root === document.documentElement) {
    // Alone in the window: as wide as it, and the head stays in sight when a deep graph scrolls.
    root.setAttribute('width', '100%');
    window.addEventListener('scroll', function () {
      head.setAttribute('transform', 'translate(0,' + window.scrollY + ')');
    });
    if (upward) window.scrollTo(0, document.documentElement.scrollHeight);
  }
  say(null);
  draw();
  recall();
})();
